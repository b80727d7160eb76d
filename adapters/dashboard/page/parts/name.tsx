import { useState } from 'preact/hooks';
import { namePartsOf } from '../model/format.ts';
import { T } from '../texts.ts';

/** A name that a client has chosen, as text: separate in its direction, blanks and controls marked, long ones cut. */
export function Name({ of: name, max = 120 }: { readonly of: string; readonly max?: number }) {
  const [isWhole, setWhole] = useState(false);
  if (name === '') return <span class="name-empty">{T.nameView.empty}</span>;
  const { parts, hidden } = namePartsOf(name, isWhole ? Infinity : max);
  return (
    <bdi class={isWhole ? 'name name-whole' : 'name'}>
      {parts.map(({ text, code }, at) =>
        code === undefined ? (
          text
        ) : (
          <span key={at} class="unseen" title={code}>
            {text}
          </span>
        )
      )}
      {hidden > 0 && (
        <button
          type="button"
          class="name-more"
          onClick={(event) => {
            event.stopPropagation();
            event.preventDefault();
            setWhole(true);
          }}
        >
          {T.nameView.all(hidden)}
        </button>
      )}
    </bdi>
  );
}
