"""Files of clients, and the package that each is about, in the order of the table in docs/clients.md."""

FILES = {
    "transformers_encoders": "transformers",
    "transformers_language": "transformers",
    "transformers_tools": "transformers",
    "timm_models": "timm",
    "torchvision_models": "torchvision",
}
