import { useState } from 'preact/hooks';
import { isAdministrator } from '../../app/session.ts';
import { streams } from '../../app/streams.ts';
import { contentsOf } from '../../model/streams.ts';
import { Action, forAdministrators } from '../../parts/confirm.tsx';
import { notifyProblem } from '../../parts/notices.tsx';
import { InputError } from '../../parts/problem.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;
const LINK_MS = 10_000;

/** The export of all rules, streams, tables and configuration to a file, and the import of one. */
export function Ruleset() {
  return (
    <div class="fact-groups">
      <section>
        <h2>{S.export}</h2>
        <p>{S.exportAbout}</p>
        <div class="form-buttons">
          <button
            type="button"
            {...forAdministrators()}
            onClick={() => {
              save().catch(notifyProblem);
            }}
          >
            {S.export}
          </button>
        </div>
      </section>
      <Import />
    </div>
  );
}

async function save(): Promise<void> {
  const ruleset = await streams('POST', '/ruleset/export');
  const url = URL.createObjectURL(new Blob([JSON.stringify(ruleset, null, 1)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = 'ruleset.json';
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), LINK_MS);
}

function Import() {
  const [file, setFile] = useState<{ readonly name: string; readonly text: string }>();
  const contents = file && contentsOf(file.text);
  return (
    <section>
      <h2>{S.import}</h2>
      <p>{S.importAbout}</p>
      <div class="field">
        <label for="ruleset">{S.file}</label>
        <input
          id="ruleset"
          type="file"
          accept="application/json,.json"
          disabled={!isAdministrator.value}
          title={isAdministrator.value ? undefined : T.errors.forbidden}
          onChange={async ({ currentTarget: { files } }) => {
            const [chosen] = files ?? [];
            setFile(chosen && { name: chosen.name, text: await chosen.text() });
          }}
        />
      </div>
      {file !== undefined && contents === undefined && (
        <p class="problem-message" role="alert">
          {S.notRuleset}
        </p>
      )}
      {contents !== undefined && (
        <div class="form-buttons">
          <Action
            label={S.import}
            title={S.importTitle}
            text={S.importText(contents.streams, contents.tables, contents.rules)}
            isDangerous
            done={S.imported}
            run={async () => {
              if (file === undefined) throw new InputError(S.notRuleset);
              return streams('POST', '/ruleset/import', { body: { content: file.text } });
            }}
            onDone={() => setFile(undefined)}
          />
        </div>
      )}
    </section>
  );
}
