"""Tables and arrays of one survey, from which its pages are drawn without a replay of the journal."""
