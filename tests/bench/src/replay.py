"""Serves the environments of bfcl-eval over lines of JSON, for the tool calls of `tracebook bench replay`."""
import ast, copy, importlib, inspect, json, sys

sys.path.insert(0, sys.argv[1])
DATA = sys.argv[1] + "/bfcl_eval/data/"
SOURCE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code."
FILES = {"GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api",
         "TwitterAPI": "posting_api", "TicketAPI": "ticket_api", "TradingBot": "trading_bot",
         "TravelAPI": "travel_booking", "VehicleControlAPI": "vehicle_control"}
environments = []


def plain(value, deep=0):
    if deep > 40 or value is None or isinstance(value, (bool, int, float, str)):
        return value if deep <= 40 else "…"
    if isinstance(value, dict):
        return {str(key): plain(one, deep + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, deep + 1) for one in value]
    if isinstance(value, set):
        return sorted(str(one) for one in value)
    if hasattr(value, "__dict__"):
        keep = {key: one for key, one in vars(value).items() if key not in ("parent", "_api_description", "_random", "_last_modified")}
        return plain(keep, deep + 1)
    return str(value)


def make(config, classes):
    found = {}
    for name in classes:
        one = getattr(importlib.import_module(SOURCE + FILES[name]), name)()
        if hasattr(one, "_load_scenario"):
            one._load_scenario(copy.deepcopy(config.get(name, {})))
        found[name] = one
    return found


def method(environment, name):
    for one in environment.values():
        if not name.startswith("_") and callable(getattr(one, name, None)):
            return getattr(one, name)
    return None


def state(environment):
    return json.dumps({name: plain(one) for name, one in environment.items()}, sort_keys=True, default=str)


def parse(environment, text):
    call = ast.parse(text.strip(), mode="eval").body
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    names = list(inspect.signature(method(environment, name)).parameters)
    given = {key: ast.literal_eval(one) for key, one in zip(names, call.args)}
    given.update({word.arg: ast.literal_eval(word.value) for word in call.keywords})
    return {"name": name, "args": given}


def tasks(_):
    goals = {}
    for line in open(DATA + "possible_answer/BFCL_v4_multi_turn_base.json"):
        one = json.loads(line)
        goals[one["id"]] = one["ground_truth"]
    found = []
    for line in open(DATA + "BFCL_v4_multi_turn_base.json"):
        one = json.loads(line)
        environment = make(one["initial_config"], one["involved_classes"])
        calls = [parse(environment, text) for text in goals[one["id"]][0]]
        found.append({"id": one["id"], "goal": one["question"][0][0]["content"], "config": one["initial_config"],
                      "classes": one["involved_classes"], "calls": calls})
    parameters = {}
    for name in FILES.values():
        for line in open(DATA + f"multi_turn_func_doc/{name}.json"):
            one = json.loads(line)
            parameters[one["name"]] = json.dumps(one["parameters"])
    return {"tasks": found, "parameters": parameters}


def start(asked):
    try:
        environments.append(make(asked["config"], asked["classes"]))
    except Exception as error:
        return {"error": str(error)}
    return {"env": len(environments) - 1}


def call(asked):
    environment = environments[asked["env"]]
    before = state(environment)
    try:
        result = method(environment, asked["name"])(**asked["args"])
    except Exception as error:
        return {"text": f"Error: {error}", "ok": False, "changed": state(environment) != before}
    result = plain(result)
    bad = isinstance(result, dict) and "error" in result
    return {"text": result if isinstance(result, str) else json.dumps(result), "ok": not bad,
            "changed": state(environment) != before}


def close(asked):
    said = state(environments[asked["env"]])
    environments[asked["env"]] = None
    return {"state": said}


OPERATIONS = {"tasks": tasks, "start": start, "call": call, "close": close}
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(OPERATIONS[asked["op"]](asked)), flush=True)
