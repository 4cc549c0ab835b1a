"""A tool for the messages of the tests."""


def draw(title):
    return {"message": f"drawn: {title}"}
