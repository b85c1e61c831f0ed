"""Windows: which rows of a stream are kept, and when each enters and leaves. One file a family, one protocol."""
