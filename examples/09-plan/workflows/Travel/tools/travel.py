"""Three tools that a plan combines. Each is an ordinary Python tool."""
import oneturn

HOTELS = {"Oslo": ["Fjord Inn", "Harbour House"], "Rome": ["Villa Aurelia"]}


def find_hotels(city, nights):
    return {"hotels": HOTELS.get(city, []), "nights": nights}


async def choose_hotel(hotels):
    if not hotels:
        return {"status": "failed", "message": "There is no hotel to choose from."}
    answer = await oneturn.ask("ChooseHotel", {"agent_message": "Which hotel shall it be?", "hotels": hotels}, name="hotel")
    return {"hotel": answer["hotel"], "message": f"{answer['hotel']} it is."}


def reserve(hotel, nights):
    number = oneturn.call().idempotency_key[:8]
    return {"number": number, "message": f"{hotel} is reserved for {nights} nights."}
