import { call, path, withQuery } from '../api.ts'
import { useActing } from '../parts/acting.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Search } from '../parts/search.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager, Table } from '../parts/table.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

interface Binding {
  readonly medium: string
  readonly address: string
  readonly user_id: string
  readonly bound_at: number
}

const SIZE = 50

export function Bindings({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { search, from = '0' } = query
  const bindings = useData<{ bindings: Binding[]; total: number }>(
    withQuery('/_hearth/admin/v1/identity/bindings', { search, from, limit: SIZE }),
  )
  const { ask, run, isBusy } = useActing()
  const change = (changes: Readonly<Record<string, string | undefined>>, isReplacing = false) =>
    go(to(['bindings'], { search, ...changes }), isReplacing)

  async function erase(address: string): Promise<void> {
    const words = (
      <p>
        {t(
          'The identity service forgets this address: nobody finds the user by it, and invitations to it end. The account itself stays.',
        )}
      </p>
    )
    const question = {
      title: t('Forget {address}?', { address }),
      words,
      verb: t('Forget it'),
      isGrave: true,
      confirm: address,
    }
    if ((await ask(question)) === undefined) return
    if (
      await run(t('The address is forgotten.'), () =>
        call('DELETE', path`/_hearth/admin/v1/identity/people/${address}`),
      )
    )
      bindings.reload()
  }

  return (
    <Page
      title={t('Identity bindings')}
      words={t('The addresses by which the identity service finds users. Each look is in the record.')}
    >
      <div class="bar">
        <Search
          label={t('Search by address or user')}
          value={search ?? ''}
          search={(text) => change({ search: text || undefined }, true)}
        />
      </div>
      <Shown of={bindings}>
        {({ bindings: rows, total }) => (
          <>
            <Table
              label={t('Bindings')}
              rows={rows}
              keyOf={({ medium, address }) => `${medium} ${address}`}
              empty={t('No address is bound.')}
              columns={[
                { title: t('Address'), isHeading: true, cell: ({ address }) => address },
                { title: t('Kind'), cell: ({ medium }) => (medium === 'msisdn' ? t('phone') : medium) },
                { title: t('User'), cell: ({ user_id }) => <a href={to(['users', user_id])}>{user_id}</a> },
                { title: t('Bound'), cell: ({ bound_at }) => <Moment at={bound_at} /> },
                {
                  title: t('Act'),
                  cell: ({ address }) => (
                    <button type="button" class="quiet small" disabled={isBusy} onClick={() => void erase(address)}>
                      {t('Forget')}
                    </button>
                  ),
                },
              ]}
            />
            <Pager
              from={Number(from)}
              shown={rows.length}
              total={total}
              size={SIZE}
              turn={(next) => change({ from: String(next) })}
            />
          </>
        )}
      </Shown>
    </Page>
  )
}
