"""Tools for text: chats, multiple choice, reasoning, answers, likelihoods. Each is loaded when it is first used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modelgauge.text.answers import SplitText as SplitText
    from modelgauge.text.answers import boxed as boxed
    from modelgauge.text.answers import first_line as first_line
    from modelgauge.text.answers import last_number as last_number
    from modelgauge.text.answers import normalize_answer as normalize_answer
    from modelgauge.text.answers import numbers_equal as numbers_equal
    from modelgauge.text.answers import split_reasoning as split_reasoning
    from modelgauge.text.answers import text_after as text_after
    from modelgauge.text.chat import chat_from_json as chat_from_json
    from modelgauge.text.chat import format_chat as format_chat
    from modelgauge.text.chat import load_chat as load_chat
    from modelgauge.text.chat import to_role_content as to_role_content
    from modelgauge.text.choice_extraction import extract_choice as extract_choice
    from modelgauge.text.likelihoods import likeliest as likeliest
    from modelgauge.text.likelihoods import log_likelihoods as log_likelihoods
    from modelgauge.text.multiple_choice import ChoiceStyle as ChoiceStyle
    from modelgauge.text.multiple_choice import MultipleChoiceQuestion as MultipleChoiceQuestion
    from modelgauge.text.multiple_choice import choice_letters as choice_letters
    from modelgauge.text.multiple_choice import few_shot_prompt as few_shot_prompt
    from modelgauge.text.multiple_choice import format_question as format_question
    from modelgauge.text.multiple_choice import shuffle_choices as shuffle_choices
else:
    from modelgauge.wording.lazy_names import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__)
