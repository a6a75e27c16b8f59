"""An HTTP server of translations around one system: the interface of LibreTranslate, and one of documents."""
