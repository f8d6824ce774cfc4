import { call, path } from '../api.ts'
import { count } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge, type Tone } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'
import { type Text, t } from '../words.ts'
import { Effects, type ListEffects } from './policy-list-effects.tsx'

interface PolicyList {
  readonly room_id: string
  readonly added_by: string
  readonly added_ts: number
  readonly state: string
  readonly rules: number
  readonly warning?: string
}

const STATES: Readonly<Record<string, readonly [Text, Tone]>> = {
  'in force': ['in force', 'good'],
  held: ['held', 'bad'],
  unknown: ['unknown', 'warn'],
}

const URL = '/_hearth/admin/v1/policy_lists'

export function PolicyLists() {
  const lists = useData<{ policy_lists: PolicyList[] }>(URL)
  const { ask, run, isBusy } = useActing()

  async function add(): Promise<void> {
    const answers = await ask({
      title: t('A policy list to follow'),
      words: (
        <p>{t('What its rules ban is refused from now on, also what its writers add later. Follow whom you trust.')}</p>
      ),
      fields: [
        { name: 'room', label: t('Room id'), hint: t('Like !abc:example.org. Somebody of this server must be in it.') },
      ],
      verb: t('See what it does'),
    })
    const room = answers?.room?.trim()
    if (room === undefined || room === '') return
    let effects: ListEffects | undefined
    const isSeen = await run(t('Looked at; nothing is done yet.'), async () => {
      effects = await call<ListEffects>('GET', `${URL}${path`/${room}`}/preview`)
    })
    if (!isSeen || effects === undefined) return
    const title = t('Follow this list?')
    if ((await ask({ title, words: <Effects effects={effects} />, verb: t('Follow') })) === undefined) return
    if (await run(t('The list is followed.'), () => call('PUT', `${URL}${path`/${room}`}`))) lists.reload()
  }

  async function remove(room: string): Promise<void> {
    const words = <p>{t('Its rules end here, and so do the bans that they brought about.')}</p>
    if ((await ask({ title: t('Follow the list no more?'), words, verb: t('Remove') })) === undefined) return
    if (await run(t('The list is removed.'), () => call('DELETE', `${URL}${path`/${room}`}`))) lists.reload()
  }

  return (
    <Page
      title={t('Policy lists')}
      words={t(
        'Rooms in which moderators publish whom they ban. This server refuses what they ban, and puts people out of rooms where moderation.ban_as says who does that.',
      )}
      actions={
        <button type="button" disabled={isBusy} onClick={() => void add()}>
          {t('Follow a list')}
        </button>
      }
    >
      <Shown of={lists}>
        {({ policy_lists: rows }) => (
          <Table
            label={t('Policy lists')}
            rows={rows}
            keyOf={(row) => row.room_id}
            empty={t('This server follows no list.')}
            columns={[
              {
                title: t('Room'),
                isHeading: true,
                cell: ({ room_id }) => (
                  <a href={to(['rooms', room_id])}>
                    <bdi>{room_id}</bdi>
                  </a>
                ),
              },
              { title: t('Rules'), isNumber: true, cell: ({ rules }) => count(rules) },
              {
                title: t('State'),
                cell: ({ state, warning }) => {
                  const [text, tone] = STATES[state] ?? ['unknown', 'warn']
                  return (
                    <>
                      <Badge tone={warning !== undefined && tone === 'good' ? 'warn' : tone}>{t(text)}</Badge>
                      {warning !== undefined && <bdi class="soft block">{warning}</bdi>}
                    </>
                  )
                },
              },
              {
                title: t('Since'),
                cell: ({ added_ts, added_by }) => (
                  <>
                    <Moment at={added_ts} />
                    <bdi class="soft block">{added_by}</bdi>
                  </>
                ),
              },
              {
                title: t('Act'),
                cell: ({ room_id }) => (
                  <button type="button" class="quiet small" disabled={isBusy} onClick={() => void remove(room_id)}>
                    {t('Remove')}
                  </button>
                ),
              },
            ]}
          />
        )}
      </Shown>
    </Page>
  )
}
