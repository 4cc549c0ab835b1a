import os
import oneturn


def open_ticket(title):
    with open(os.path.join(os.environ["TEST_DESK"], oneturn.call().idempotency_key), "w") as file:
        file.write(title)
    return {"status": "success", "message": "opened: " + title}
