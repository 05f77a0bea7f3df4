"""What ``make bench`` measures: one module for each question, one declaration of the aims."""
