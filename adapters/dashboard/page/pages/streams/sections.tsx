import { streams } from '../../app/streams.ts';
import type { TypeRow } from '../../model/streams.ts';
import { Action } from '../../parts/confirm.tsx';
import { type Copied, CopyAs } from '../../parts/copy.tsx';
import { Pairs } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import type { Properties } from '../../parts/properties.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { type Entry, EntryButton } from './entry.tsx';

const S = T.streamRules;

function pathOf({ type, name }: Pick<Entry, 'type' | 'name'>): string {
  return `/metadata/sources/${encodeURIComponent(type)}/confKeys/${encodeURIComponent(name)}`;
}

/** The commands that save a section. */
function copiedOf({ type, name, properties }: Entry): Copied {
  return {
    of: 'streams',
    request: { method: 'PUT', path: pathOf({ type, name }), body: properties },
    ctl: ['stream', 'set-section', '--', type, name, '-'],
    input: JSON.stringify(properties)
  };
}

/** The sections of properties of sources, which streams select with CONF_KEY. */
export function Sections() {
  const { value, error, reload } = useLoaded('sections', async (signal) => {
    const types = (await streams('GET', '/metadata/sources', { signal })) as readonly TypeRow[];
    const found = await Promise.all(
      types.map(async ({ name: type }) => {
        const path = `/metadata/sources/${encodeURIComponent(type)}/confKeys`;
        const own = (await streams('GET', path, { signal })) as Readonly<Record<string, Properties>>;
        return Object.entries(own).map(([name, properties]): Entry => ({ name, type, properties }));
      })
    );
    return { types: types.map(({ name }) => name), sections: found.flat() };
  });
  const save = (entry: Entry) => streams('PUT', pathOf(entry), { body: entry.properties });
  return (
    <section class="stack">
      <div class="sample-head">
        <h2>{S.sections}</h2>
        <EntryButton
          label={S.addSection}
          entry={undefined}
          types={value?.types ?? []}
          save={save}
          copied={copiedOf}
          onDone={reload}
        />
      </div>
      <p class="aside">{S.sectionsAbout}</p>
      <Table
        caption={S.sections}
        rows={value?.sections}
        error={error}
        onRetry={reload}
        keyOf={({ type, name }) => `${type} ${name}`}
        empty={S.noSections}
        columns={[
          { head: T.access.name, cell: ({ name }) => <Name of={name} /> },
          { head: S.type, cell: ({ type }) => type },
          {
            head: S.properties,
            isWide: true,
            isMinor: true,
            cell: ({ properties }) => <Pairs of={properties} />
          },
          {
            head: '',
            cell: (entry) => (
              <span class="section-actions">
                <EntryButton
                  label={T.rules.change}
                  entry={entry}
                  types={[]}
                  save={save}
                  copied={copiedOf}
                  onDone={reload}
                />
                <Action
                  label={T.rules.remove}
                  title={S.removeSection}
                  of={entry.name}
                  text={S.removeSectionText}
                  kind="small"
                  isDangerous
                  done={S.sectionRemoved}
                  run={() => streams('DELETE', pathOf(entry))}
                  onDone={reload}
                >
                  <CopyAs
                    of="streams"
                    request={{ method: 'DELETE', path: pathOf(entry) }}
                    ctl={['stream', 'drop-section', '--', entry.type, entry.name]}
                  />
                </Action>
              </span>
            )
          }
        ]}
      />
    </section>
  );
}
