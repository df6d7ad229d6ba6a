"""Topics of pages: rules, trained models and the words of pages, for focused crawls, samples and statistics."""
