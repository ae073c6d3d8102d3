"""Tracing: `record.py` turns operator calls into a graph, `modules.py` gives modules their methods, `trace.py` is what users
call.

In: a function or module, and example inputs. Out: a ScriptFunction or ScriptModule that replays the operations on the examples.
"""
