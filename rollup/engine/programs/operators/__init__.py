"""The operators: one class each, with annotated fields for its state and short methods in the compiler's subset."""
