import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** A text of many lines. One that is longer than its frame can be scrolled with the keyboard. */
export function Result({
  children,
  dir,
  role
}: {
  readonly children: ComponentChildren;
  readonly dir?: 'ltr';
  readonly role?: 'status';
}) {
  const frame = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const { current } = frame;
    if (current !== null) current.tabIndex = current.scrollHeight > current.clientHeight ? 0 : -1;
  });
  return (
    <pre class="result" ref={frame} dir={dir} role={role}>
      {children}
    </pre>
  );
}
