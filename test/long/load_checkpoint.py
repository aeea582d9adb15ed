"""Loads a checkpoint of t1 with transformers: python load_checkpoint.py FOLDER TOKENS. Prints JSON.

logits      of every position, in single precision
generated   what generate() adds to the tokens when the end token is made the likeliest at the fourth step
end         the text of the token that ends an answer, as the tokenizer of the folder says it
"""
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor

folder, tokens = sys.argv[1], torch.tensor([json.loads(sys.argv[2])])
model, loading = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
assert not loading["missing_keys"] and not loading["unexpected_keys"], loading
tokenizer = AutoTokenizer.from_pretrained(folder)
end = tokenizer.convert_tokens_to_ids(tokenizer.eos_token)

class EndAtFourth(LogitsProcessor):
    def __call__(self, ids, scores):
        scores = scores.clone(); scores[:, end] = 1e9 if ids.shape[1] == tokens.shape[1] + 3 else -1e9
        return scores

with torch.no_grad():
    logits = model(tokens).logits[0]
    generated = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=20, logits_processor=[EndAtFourth()])
print(json.dumps({"logits": logits.tolist(), "generated": generated[0, tokens.shape[1]:].tolist(), "end": tokenizer.eos_token, "class": type(model).__name__}))
