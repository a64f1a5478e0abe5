"""The live Textual screen: one immutable snapshot a tick, no arithmetic of its own."""
