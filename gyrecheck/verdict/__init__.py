"""Pure judgement: program, events, fields and rulebook in; findings and verdicts out."""
