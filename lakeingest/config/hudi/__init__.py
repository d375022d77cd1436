"""The settings of Hudi's writer, which lakeingest passes on to it."""
