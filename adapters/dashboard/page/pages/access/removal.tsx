import type { ComponentChildren } from 'preact';
import { request } from '../../app/requests.ts';
import { Action } from '../../parts/confirm.tsx';
import { T } from '../../texts.ts';

/** A button that deletes an item; it is small, as in the row of the item. */
export function Removal({
  path,
  label = T.access.remove,
  isDangerous = true,
  ...props
}: {
  /** The path of the item in the management interface, with encoded names. */
  readonly path: string;
  readonly label?: string;
  readonly title: string;
  /** The name of the item, unless the title has it. */
  readonly of?: string;
  readonly text: string;
  readonly isDangerous?: boolean;
  readonly done: string;
  readonly onDone: () => void;
  readonly prevented?: string | undefined;
  readonly kind?: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <Action
      kind="small"
      {...props}
      label={label}
      isDangerous={isDangerous}
      run={() => request('POST', '/x/delete', { body: { path } })}
    />
  );
}
