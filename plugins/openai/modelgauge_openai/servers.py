"""Well-known services of the protocol: what `?server=NAME` stands for.

Each has its address, the variable that holds its key, and where it differs from the protocol; the page that says so
stands beside it.
"""

from typing import Any

SERVERS: dict[str, dict[str, Any]] = {
    # https://docs.claude.com/en/api/openai-sdk: `n` must be 1; seed, logprobs and response_format are ignored
    "anthropic": {
        "base_url": "https://api.anthropic.com/v1",
        "key_env": "ANTHROPIC_API_KEY",
        "completions": "many_calls",
        "omit": ("seed", "logprobs", "response_format"),
    },
    # https://inference-docs.cerebras.ai/resources/openai
    "cerebras": {"base_url": "https://api.cerebras.ai/v1", "key_env": "CEREBRAS_API_KEY"},
    # https://api-docs.deepseek.com: JSON only as {"type": "json_object"}
    "deepseek": {
        "base_url": "https://api.deepseek.com",
        "key_env": "DEEPSEEK_API_KEY",
        "structured_output": False,
    },
    # https://docs.fireworks.ai/tools-sdks/openai-compatibility
    "fireworks": {"base_url": "https://api.fireworks.ai/inference/v1", "key_env": "FIREWORKS_API_KEY"},
    # https://ai.google.dev/gemini-api/docs/openai
    "google": {
        "base_url": "https://generativelanguage.googleapis.com/v1beta/openai",
        "key_env": "GEMINI_API_KEY",
    },
    # https://console.groq.com/docs/openai: logprobs are refused, and `n` must be 1
    "groq": {
        "base_url": "https://api.groq.com/openai/v1",
        "key_env": "GROQ_API_KEY",
        "completions": "many_calls",
        "omit": ("logprobs",),
    },
    # https://huggingface.co/docs/inference-providers/index
    "huggingface": {"base_url": "https://router.huggingface.co/v1", "key_env": "HF_TOKEN"},
    # https://docs.litellm.ai/docs/proxy/user_keys
    "litellm": {"base_url": "http://localhost:4000/v1"},
    # https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    "llamacpp": {"base_url": "http://localhost:8080/v1"},
    # https://lmstudio.ai/docs/developer/openai-compat: it answers without log-probabilities
    "lmstudio": {"base_url": "http://localhost:1234/v1", "omit": ("logprobs",)},
    # https://docs.mistral.ai/api/endpoint/chat: the seed is called random_seed there; unknown fields are refused
    "mistral": {
        "base_url": "https://api.mistral.ai/v1",
        "key_env": "MISTRAL_API_KEY",
        "omit": ("seed", "logprobs", "top_k"),
    },
    # https://docs.ollama.com/api/openai-compatibility
    "ollama": {"base_url": "http://localhost:11434/v1"},
    # https://openrouter.ai/docs/api/reference/overview
    "openrouter": {"base_url": "https://openrouter.ai/api/v1", "key_env": "OPENROUTER_API_KEY"},
    # https://docs.sglang.io/basic_usage/openai_api_completions.html
    "sglang": {"base_url": "http://localhost:30000/v1"},
    # https://huggingface.co/docs/text-generation-inference/reference/api_reference
    "tgi": {"base_url": "http://localhost:3000/v1"},
    # https://docs.together.ai/docs/openai-api-compatibility
    "together": {"base_url": "https://api.together.xyz/v1", "key_env": "TOGETHER_API_KEY"},
    # https://huggingface.co/docs/transformers/serving; as of 5.23 it ignores what is omitted here, and `n`
    "transformers": {
        "base_url": "http://localhost:8000/v1",
        "completions": "many_calls",
        "omit": ("seed", "logprobs", "response_format"),
    },
    # https://docs.vllm.ai/en/stable/serving/openai_compatible_server.html
    "vllm": {"base_url": "http://localhost:8000/v1"},
    # https://docs.x.ai/docs/api-reference
    "xai": {"base_url": "https://api.x.ai/v1", "key_env": "XAI_API_KEY"},
}
