import { useState } from 'preact/hooks';
import { hrefOf } from '../app/place.ts';
import { namePartsOf } from '../model/format.ts';
import type { RuleReference } from '../model/tail.ts';
import { T } from '../texts.ts';

/**
 * A name that a client has chosen, as text: separate in its direction, blanks and controls marked, long ones cut.
 * @param isPlain the rest of a long name cannot be shown: the name is in a button or an option, which can contain no other button
 */
export function Name({
  of: name,
  max = 120,
  isPlain = false
}: {
  readonly of: string;
  readonly max?: number;
  readonly isPlain?: boolean;
}) {
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
      {hidden > 0 && isPlain && <span class="aside"> {T.nameView.all(hidden)}</span>}
      {hidden > 0 && !isPlain && (
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

/** The publisher of a message, with a link: a client, or a rule, whose client id does not name it. @param max as `Name` */
export function Publisher({
  id,
  rule,
  max
}: {
  readonly id: string;
  readonly rule?: RuleReference | undefined;
  readonly max?: number;
}) {
  if (rule === undefined)
    return (
      <a href={hrefOf('client', { id })}>
        <Name of={id} max={max} />
      </a>
    );
  return (
    <span title={T.nameView.ofRuleAbout(id)}>
      <span class="aside">{T.nameView.ofRule[rule.kind]} </span>
      <a href={hrefOf(rule.kind === 'rule' ? 'rule' : 'stream', { id: rule.id })}>
        <Name of={rule.id} max={max} />
      </a>
    </span>
  );
}
