import { withQuery } from '../api.ts'
import { moment } from '../format.ts'
import { Badge } from '../parts/badge.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { rich, t } from '../words.ts'

interface Act {
  readonly act_nid: number
  readonly at: number
  readonly actor: string
  readonly act: string
  readonly target: string
  readonly outcome: string
}

const SIZE = 50

export function Acts({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { target, actor, before } = query
  const acts = useData<{ acts: Act[]; next_before?: number }>(
    withQuery('/_hearth/admin/v1/acts', { target, actor, before, limit: SIZE }),
  )
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['acts'], { target, actor, ...changes }), isReplacing)
  return (
    <Page title={t('Record of acts')} words={t('What administrators changed, and whose private data they read.')}>
      <div class="bar">
        <Search
          label={t('Whom or what it was done to, exactly')}
          value={target ?? ''}
          search={(text) => change({ target: text || undefined }, true)}
        />
        {actor !== undefined && (
          <button type="button" class="quiet small" onClick={() => change({ actor: undefined })}>
            {rich('only by {who}', { who: <bdi>{actor}</bdi> })} ×
          </button>
        )}
      </div>
      <Shown of={acts}>
        {({ acts: rows, next_before }) => (
          <>
            <Table
              label={t('Acts')}
              rows={rows}
              keyOf={(row) => row.act_nid}
              empty={t('Nothing is recorded here.')}
              columns={[
                {
                  title: t('When'),
                  cell: ({ at }) => (
                    <time class="whole" dateTime={new Date(at).toISOString()}>
                      {moment(at)}
                    </time>
                  ),
                },
                {
                  title: t('Who'),
                  cell: ({ actor: who }) => <a href={to(['acts'], { target, actor: who })}>{who}</a>,
                },
                { title: t('What'), isHeading: true, cell: ({ act }) => <code title={act}>{shortened(act)}</code> },
                { title: t('To whom'), cell: (row) => row.target },
                { title: t('Outcome'), cell: ({ outcome }) => <Outcome outcome={outcome} /> },
              ]}
            />
            <nav class="pager" aria-label={t('Pages of the list')}>
              {before !== undefined && (
                <a class="button quiet small" href={to(['acts'], { target, actor })}>
                  {t('Newest')}
                </a>
              )}
              {rows.length === SIZE && next_before !== undefined && (
                <button type="button" class="quiet small" onClick={() => change({ before: String(next_before) })}>
                  {t('Older')}
                </button>
              )}
            </nav>
          </>
        )}
      </Shown>
    </Page>
  )
}

/** The operation without the beginning that most have in common. */
const shortened = (act: string) =>
  act === 'GET /_hearth/admin/'
    ? 'GET console'
    : act.replace(/\/_(?:synapse|hearth)\/admin\/(?:v\d\/)?|C1\/admin\//, '')

function Outcome({ outcome }: { readonly outcome: string }) {
  if (outcome === 'done') return <Badge tone="good">{t('done')}</Badge>
  return outcome === 'begun' ? <Badge tone="warn">{t('begun, not ended')}</Badge> : <Badge tone="bad">{outcome}</Badge>
}
