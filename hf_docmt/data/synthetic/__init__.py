"""The built-in discourse corpus: documents and contrastive suites from a grammar and a lexicon of our own."""
