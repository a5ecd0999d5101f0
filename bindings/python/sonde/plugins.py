"""Plugins and the functions they publish."""

from . import _sonde


def plugins():
    """What is installed, from the manifests: list of dicts with id, version, summary, interfaces, functions."""
    return _sonde.list_plugins()


class Plugin:
    """Published functions as methods: `sonde.plugin("workload").kernel_count(run.session)`.

    Arguments follow the signature; out parameters come back as the result, several as a tuple.
    """

    def __init__(self, identity):
        known = {entry["id"]: entry for entry in plugins()}
        if identity not in known:
            raise _sonde.Error(f"no plugin {identity!r}; there are: {', '.join(sorted(known)) or 'none'}", -2)
        self.id = identity
        self.functions = known[identity]["functions"]

    def __getattr__(self, name):
        functions = self.__dict__.get("functions", {})
        if name not in functions:
            raise AttributeError(f"plugin {self.id} publishes no {name!r}; it has: {', '.join(sorted(functions)) or 'nothing'}")
        signature, help_text = functions[name]

        def function(*arguments):
            return _sonde.call(self.id, name, *arguments)

        function.__name__ = name
        function.__doc__ = f"{signature}: {help_text}"
        return function

    def __dir__(self):
        return [*super().__dir__(), *self.functions]


def plugin(identity):
    """A plugin by id; it is loaded at the first call."""
    return Plugin(identity)
