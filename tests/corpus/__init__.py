"""Sources whose verdict is known, for the labs' graders to be measured with."""
