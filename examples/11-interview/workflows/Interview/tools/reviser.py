"""A model with one scripted answer."""
import json


def reviser(request, **rest):
    blueprint = json.loads(request["output"].replace("'", '"'))
    return {**blueprint, "pages": ["Catalogue", "Lamp", "Cart"]}
