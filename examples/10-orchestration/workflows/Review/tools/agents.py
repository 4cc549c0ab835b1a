"""Three agents with scripted answers, in place of models."""


def facts(prompt):
    dated = any(c.isdigit() for c in prompt)
    return {"score": 4 if dated else 2, "note": "The date is given." if dated else "There is no date."}


def style(prompt):
    short = len(prompt.split()) <= 12
    return {"score": 5 if short else 3, "note": "Short and clear." if short else "Too long."}


def editor(prompt, reviews):
    total = sum(review["score"] for review in reviews.values())
    notes = " ".join(reviews[name]["note"] for name in sorted(reviews))
    return {"verdict": "print it" if total >= 8 else "rework it", "message": f"{prompt} {total} of 10. {notes}"}
