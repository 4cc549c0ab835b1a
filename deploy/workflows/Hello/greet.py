"""Greets a person by name."""

GREETINGS = {"en": "Hello", "de": "Hallo", "fr": "Bonjour"}


def greet(name: str, language: str = "en") -> dict:
    return {"greeting": f"{GREETINGS[language]}, {name}!"}
