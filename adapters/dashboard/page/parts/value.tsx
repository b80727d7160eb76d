import { useState } from 'preact/hooks';
import { mayReadPayloads } from '../app/session.ts';
import { sizeText } from '../model/format.ts';
import { bytesOf, FORMS, type Form, formOf, hexText, jsonText, utf8Of } from '../model/payload.ts';
import { T } from '../texts.ts';
import { CopyButton } from './copy.tsx';

/** Bytes that are shown at first. */
const SHOWN = 16_384;

/** A payload as an interface has it. */
export interface Payload {
  readonly payload?: string | undefined;
  readonly encoding?: 'plain' | 'base64' | undefined;
}

/** A payload in the form that suits it, or in another one that the reader chooses. */
export function PayloadView({ of: { payload, encoding } }: { readonly of: Payload }) {
  const [chosen, setChosen] = useState<Form | undefined>();
  const [isWhole, setWhole] = useState(false);
  if (!mayReadPayloads.value) return <p class="aside">{T.value.hidden}</p>;
  if (payload === undefined) return null;
  const bytes = encoding === 'base64' ? (bytesOf(payload) ?? new Uint8Array()) : new TextEncoder().encode(payload);
  if (bytes.length === 0) return <p class="aside">{T.value.empty}</p>;
  const form = chosen ?? formOf(bytes);
  const shown = isWhole ? bytes : bytes.subarray(0, SHOWN);
  const text = textIn(form, shown, bytes);
  return (
    <div class="value">
      <fieldset class="value-bar" aria-label={T.value.form}>
        {FORMS.map((name) => (
          <button key={name} type="button" class="small" aria-pressed={name === form} onClick={() => setChosen(name)}>
            {T.value.forms[name]}
          </button>
        ))}
        <span class="aside">{sizeText(bytes.length)}</span>
        <CopyButton text={textIn(form, bytes, bytes)} />
      </fieldset>
      <pre dir="ltr">
        <bdi>{text}</bdi>
      </pre>
      {shown.length < bytes.length && (
        <button type="button" class="small" onClick={() => setWhole(true)}>
          {T.value.more(bytes.length - shown.length)}
        </button>
      )}
    </div>
  );
}

function textIn(form: Form, shown: Uint8Array, all: Uint8Array): string {
  if (form === 'hex') return hexText(shown);
  const text = utf8Of(all);
  if (text === undefined) return T.value.notUtf8;
  if (form === 'json')
    return jsonText(text)?.slice(0, shown.length === all.length ? undefined : SHOWN) ?? T.value.notJson;
  return shown.length === all.length ? text : new TextDecoder().decode(shown);
}
