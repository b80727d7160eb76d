import { CopyAs } from '../../parts/copy.tsx';
import { T } from '../../texts.ts';
import { Removal } from './removal.tsx';

const A = T.access;

/** A button that lifts a ban. */
export function LiftBan({
  as,
  who,
  label = A.lift,
  kind = 'small',
  onDone
}: {
  readonly as: string;
  readonly who: string;
  readonly label?: string;
  readonly kind?: string;
  readonly onDone: () => void;
}) {
  const path = `/banned/${as}/${encodeURIComponent(who)}`;
  return (
    <Removal
      path={path}
      label={label}
      kind={kind}
      title={A.liftTitle}
      of={who}
      text={A.liftText}
      isDangerous={false}
      done={A.lifted}
      onDone={onDone}
    >
      <CopyAs request={{ method: 'DELETE', path }} ctl={['ban', 'remove', '--as', as, '--', who]} />
    </Removal>
  );
}
