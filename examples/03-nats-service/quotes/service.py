"""A service with one tool that needs only Python's standard library: quotes.make calculates a price and
reports progress."""

import json
import os
import threading
import time

import nats

PRICES = {"tea": 4.5, "coffee": 7.25}  # of one


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def quote(call, item, count):
    if item not in PRICES:
        raise Failure("user_error", "We do not sell %s." % item)
    for percent in (25, 50, 75):
        call.progress(percent, "comparing prices")
        time.sleep(0.01)
    price = round(PRICES[item] * count * (0.9 if count >= 100 else 1), 2)
    return {"message": "%d of %s for %.2f." % (count, item, price), "price": price}


class Call:
    """The request of a worker."""

    def __init__(self, connection, message):
        self.connection, self.message = connection, message

    def progress(self, percent, text):
        body = json.dumps({"percent": percent, "message": text}).encode()
        self.connection.publish(self.message.reply, body, headers={"Oneturn-Kind": "progress"})

    def respond(self, value):
        self.connection.publish(self.message.reply, json.dumps(value).encode())

    def fail(self, code, text):
        headers = {"Oneturn-Error-Code": code, "Nats-Service-Error": text}
        self.connection.publish(self.message.reply, b"", headers=headers)


def answer(connection, message):
    call = Call(connection, message)
    try:
        call.respond(quote(call, **json.loads(message.body)))
    except Failure as failure:
        call.fail(failure.code, str(failure))
    except TypeError as error:
        call.fail("bad_args", str(error))
    except Exception as error:
        call.fail("tool_error", str(error))


def main():
    connection = nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))

    def take(message):  # each call has its own thread
        threading.Thread(target=answer, args=(connection, message), daemon=True).start()

    connection.subscribe("quotes.make", take, queue="quotes")
    connection.flush()
    print("quotes is ready", flush=True)
    connection.run()


main()
