import { T } from '../../texts.ts';
import { forAdministrators } from '../confirm.tsx';

/** Says that another person has saved a rule since its draft began, and lets the person choose which one stays. */
export function Newer({ onLoad, onReplace }: { readonly onLoad: () => void; readonly onReplace: () => void }) {
  return (
    <div class="warning stack" role="alert">
      <p>{T.rules.newer}</p>
      <div class="form-buttons">
        <button type="button" onClick={onLoad}>
          {T.rules.loadNewer}
        </button>
        <button type="button" class="danger" {...forAdministrators()} onClick={onReplace}>
          {T.rules.replaceNewer}
        </button>
      </div>
    </div>
  );
}
