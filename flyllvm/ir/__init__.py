"""The fly IR: types, values, operations with regions, and the protocols atoms fulfil."""
