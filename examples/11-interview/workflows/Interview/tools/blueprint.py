def draw_blueprint(title, pages, context_variables):
    context_variables.set("blueprint", {"title": title, "pages": pages})
    return {"message": f"{title}: {len(pages)} pages, the first is {pages[0]}."}
