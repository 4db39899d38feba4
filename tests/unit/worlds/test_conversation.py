from corral.worlds.conversation import shown

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def said(role: str, content: object) -> dict[str, object]:
    return {"role": role, "content": content}


def test_instructions_and_a_question_are_one_text():
    assert shown([said("system", "Be kind."), said("user", "Who?")]) == "Be kind.\n\nWho?"
    assert shown([said("tool", [{"type": "text", "text": "3"}])]) == "3"
    assert shown([]) == ""


def test_in_a_longer_conversation_each_says_who_speaks():
    told = [said("user", "1?"), said("assistant", None), said("user", "2?")]
    assert shown(told) == "[user]\n\n1?\n\n[assistant]\n\n\n\n[user]\n\n2?"


def test_with_a_picture_all_are_content_blocks():
    told = shown([said("system", "Look."), said("user", [PICTURE])])
    assert told == [{"type": "text", "text": "Look."}, PICTURE]
