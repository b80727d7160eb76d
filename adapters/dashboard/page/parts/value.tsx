import { useEffect, useMemo, useState } from 'preact/hooks';
import { mayReadPayloads } from '../app/session.ts';
import type { Decoded, Fault } from '../model/decoded.ts';
import { countText, sizeText } from '../model/format.ts';
import { bytesOf, FORMS, type Form, type FormHints, formOf, hexText, jsonText, utf8Of } from '../model/payload.ts';
import { T } from '../texts.ts';
import { CopyButton } from './copy.tsx';

const V = T.value;
/** Bytes, or characters of a decoded text, that are shown at first. */
const SHOWN = 16_384;

/** A payload as an interface has it, and facts about its message. */
export interface Payload extends FormHints {
  readonly payload?: string | undefined;
  readonly encoding?: 'plain' | 'base64' | undefined;
  /** The size of the whole payload, if only its beginning is here. */
  readonly payloadBytes?: number | undefined;
}

type Decode = (bytes: Uint8Array) => Decoded;

/** The forms whose code is loaded when they are first shown. */
const BINARY: Partial<Record<Form, () => Promise<Decode>>> = {
  cbor: async () => (await import('../model/cbor.ts')).cborText,
  sparkplug: async () => (await import('../model/sparkplug.ts')).sparkplugText
};
const loaded = new Map<Form, Decode>();

/** Returns a function that makes the text of payloads in a form, and undefined while its code is being loaded. */
export function useForm(form: Form): Decode | undefined {
  const [, setCount] = useState(0);
  const load = BINARY[form];
  useEffect(() => {
    if (load === undefined || loaded.has(form)) return;
    load()
      .then(
        (decode) => loaded.set(form, decode),
        () => loaded.set(form, () => ({ text: T.shell.outdated }))
      )
      .then(() => setCount((count) => count + 1));
  }, [form]);
  return load === undefined ? (bytes) => ({ text: plainText(form, bytes) }) : loaded.get(form);
}

/** Buttons that choose the form of payloads. */
export function Forms({ shown, onChoose }: { readonly shown: Form; readonly onChoose: (form: Form) => void }) {
  return (
    <>
      {FORMS.map((name) => (
        <button key={name} type="button" class="small" aria-pressed={name === shown} onClick={() => onChoose(name)}>
          {V.forms[name]}
        </button>
      ))}
    </>
  );
}

/** A payload in the form that suits it, or in another one that the reader chooses. */
export function PayloadView({ of: { payload, encoding, payloadBytes, ...hints } }: { readonly of: Payload }) {
  const [chosen, setChosen] = useState<Form | undefined>();
  const [isWhole, setWhole] = useState(false);
  const bytes = useMemo(
    () => (encoding === 'base64' ? (bytesOf(payload ?? '') ?? new Uint8Array()) : new TextEncoder().encode(payload)),
    [payload, encoding]
  );
  const form = chosen ?? formOf(bytes, hints);
  const decode = useForm(form);
  const { text, fault } = useMemo(
    () => decode?.(bytes) ?? { text: T.shell.loading, fault: undefined },
    [bytes, form, decode === undefined]
  );
  if (!mayReadPayloads.value) return <p class="aside">{V.hidden}</p>;
  if (payload === undefined) return null;
  if (bytes.length === 0) return <p class="aside">{V.empty}</p>;
  const size = payloadBytes ?? bytes.length;
  const shown = isWhole ? text : text.slice(0, SHOWN);
  return (
    <div class="value">
      <fieldset class="value-bar" aria-label={V.form}>
        <Forms shown={form} onChoose={setChosen} />
        <span class="aside number">
          {size > bytes.length ? V.firstOf(sizeText(bytes.length), sizeText(size)) : sizeText(size)}
        </span>
        <CopyButton text={text} />
      </fieldset>
      {fault && <p class="warning">{faultText(fault, form, size > bytes.length)}</p>}
      <pre dir="ltr">
        <bdi>{shown}</bdi>
      </pre>
      {shown.length < text.length && (
        <button type="button" class="small" onClick={() => setWhole(true)}>
          {V.more(text.length - shown.length)}
        </button>
      )}
    </div>
  );
}

/** A fault in words. A payload of which only the beginning is here ends early, which is not a fault. */
function faultText({ code, at }: Fault, form: Form, isCut: boolean): string {
  if (code === 'ends' && isCut) return V.cut;
  return V.faults[code](countText(at), V.forms[form]);
}

function plainText(form: Form, bytes: Uint8Array): string {
  if (form === 'hex') return hexText(bytes);
  const text = utf8Of(bytes);
  if (text === undefined) return V.notUtf8;
  return form === 'json' ? (jsonText(text) ?? V.notJson) : text;
}
