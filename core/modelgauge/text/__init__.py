"""What is done with text: chats, multiple choice, reasoning blocks, answers. Names only, no code."""

from modelgauge.text.answers import (
    SplitText,
    boxed,
    first_line,
    last_number,
    normalize_answer,
    numbers_equal,
    split_reasoning,
    text_after,
)
from modelgauge.text.chat import chat_from_json, format_chat, load_chat, to_role_content
from modelgauge.text.choice_extraction import extract_choice
from modelgauge.text.multiple_choice import (
    ChoiceStyle,
    MultipleChoiceQuestion,
    choice_letters,
    few_shot_prompt,
    format_question,
    shuffle_choices,
)

__all__ = [
    "ChoiceStyle",
    "MultipleChoiceQuestion",
    "SplitText",
    "boxed",
    "chat_from_json",
    "choice_letters",
    "extract_choice",
    "few_shot_prompt",
    "first_line",
    "format_chat",
    "format_question",
    "last_number",
    "load_chat",
    "normalize_answer",
    "numbers_equal",
    "shuffle_choices",
    "split_reasoning",
    "text_after",
    "to_role_content",
]
