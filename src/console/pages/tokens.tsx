import { call, path } from '../api.ts'
import { count } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

interface Token {
  readonly token: string
  readonly uses_allowed: number | null
  readonly completed: number
  readonly expiry_time: number | null
}

const isUsedUp = ({ uses_allowed, completed }: Token) => uses_allowed !== null && completed >= uses_allowed
const isOver = ({ expiry_time }: Token) => expiry_time !== null && expiry_time < Date.now()

export function Tokens() {
  const tokens = useData<{ registration_tokens: Token[] }>('/_synapse/admin/v1/registration_tokens')
  const { ask, run, isBusy, say } = useActing()

  async function create(): Promise<void> {
    const answers = await ask({
      title: t('A new registration token'),
      words: <p>{t('Whoever has it can make an account, where registration asks for one.')}</p>,
      fields: [
        { name: 'token', label: t('Token'), hint: t('Leave it empty for a random one.'), isOptional: true },
        {
          name: 'uses',
          label: t('How often it can be used'),
          kind: 'number',
          hint: t('Empty: without a limit.'),
          isOptional: true,
        },
        {
          name: 'until',
          label: t('Until when'),
          kind: 'datetime-local',
          hint: t('Empty: for good.'),
          isOptional: true,
        },
      ],
      verb: t('Create'),
    })
    if (answers === undefined) return
    const body = {
      ...(answers.token ? { token: answers.token } : {}),
      ...(answers.uses ? { uses_allowed: Number(answers.uses) } : {}),
      ...(answers.until ? { expiry_time: new Date(answers.until).getTime() } : {}),
    }
    let made: Token | undefined
    const isDone = await run(t('The token is made.'), async () => {
      made = await call<Token>('POST', '/_synapse/admin/v1/registration_tokens/new', body)
    })
    if (!isDone) return
    if (made !== undefined) say(t('The token is made: {token}', { token: made.token }))
    tokens.reload()
  }

  async function remove(token: string): Promise<void> {
    const words = <p>{t('Nobody can use it any more. Accounts that were made with it stay.')}</p>
    if ((await ask({ title: t('Delete the token?'), words, verb: t('Delete'), isGrave: true })) === undefined) return
    const url = path`/_synapse/admin/v1/registration_tokens/${token}`
    if (await run(t('The token is deleted.'), () => call('DELETE', url))) tokens.reload()
  }

  return (
    <Page
      title={t('Registration tokens')}
      actions={
        <button type="button" disabled={isBusy} onClick={() => void create()}>
          {t('New token')}
        </button>
      }
    >
      <Shown of={tokens}>
        {({ registration_tokens: rows }) => (
          <Table
            label={t('Registration tokens')}
            rows={rows}
            keyOf={(row) => row.token}
            empty={t('There are no tokens. One lets somebody register whom you choose.')}
            columns={[
              { title: t('Token'), isHeading: true, cell: ({ token }) => <code>{token}</code> },
              {
                title: t('Used'),
                isNumber: true,
                cell: ({ completed, uses_allowed }) =>
                  uses_allowed === null
                    ? count(completed)
                    : t('{used} of {allowed}', { used: count(completed), allowed: count(uses_allowed) }),
              },
              {
                title: t('Until'),
                cell: ({ expiry_time }) => (expiry_time === null ? t('for good') : <Moment at={expiry_time} />),
              },
              {
                title: t('State'),
                cell: (row) =>
                  isUsedUp(row) ? (
                    <Badge>{t('used up')}</Badge>
                  ) : isOver(row) ? (
                    <Badge>{t('over')}</Badge>
                  ) : (
                    <Badge tone="good">{t('good')}</Badge>
                  ),
              },
              {
                title: t('Act'),
                cell: ({ token }) => (
                  <button type="button" class="quiet small" disabled={isBusy} onClick={() => void remove(token)}>
                    {t('Delete')}
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
