"""What the events of a stream cause where that is the same for every event: from stream to listeners without asking who is
next, and told as columns. Instances and stores are those of the component; a pipeline keeps nothing itself."""
