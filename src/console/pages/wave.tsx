import { useState } from 'preact/hooks'
import { call, reasonOf } from '../api.ts'
import { count } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Card, Page } from '../parts/page.tsx'
import { to } from '../router.ts'
import { type Text, t } from '../words.ts'

interface Crowd {
  readonly name?: string
  readonly registered_after?: number
  readonly registered_before?: number
  readonly seen_at?: string
}

interface Found {
  readonly crowd: Crowd
  readonly total: number
  readonly user_ids: readonly string[]
}

const CROWDS = '/_hearth/admin/v1/crowds'
const SHOWN = 50

function crowdIn(form: HTMLFormElement): Crowd {
  const data = new FormData(form)
  const text = (name: string) => String(data.get(name) ?? '').trim()
  const time = (name: string) => (text(name) === '' ? undefined : new Date(text(name)).getTime())
  const [after, before] = [time('after'), time('before')]
  return {
    ...(text('name') !== '' && { name: text('name') }),
    ...(text('address') !== '' && { seen_at: text('address') }),
    ...(after !== undefined && { registered_after: after }),
    ...(before !== undefined && { registered_before: before }),
  }
}

/** Ends a wave of spam: says who belongs to it, and does the same to all of them. */
export function Wave() {
  const [found, setFound] = useState<Found>()
  const [problem, setProblem] = useState<string>()

  async function find(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const crowd = crowdIn(event.currentTarget as HTMLFormElement)
    try {
      setFound({ crowd, ...(await call<Omit<Found, 'crowd'>>('POST', `${CROWDS}/find`, { crowd })) })
      setProblem(undefined)
    } catch (error) {
      setFound(undefined)
      setProblem(reasonOf(error))
    }
  }

  return (
    <Page
      title={t('Spam wave')}
      words={t('Many accounts at once. Administrators and users of bridges are never among them.')}
    >
      <Card title={t('Who belongs to it')}>
        <form class="fields" onSubmit={(event) => void find(event)}>
          <label>
            {t('Name')}
            <input name="name" data-search="yes" placeholder="bot*" autocomplete="off" spellcheck={false} />
          </label>
          <label>
            {t('Registered after')}
            <input name="after" type="datetime-local" />
          </label>
          <label>
            {t('Registered before')}
            <input name="before" type="datetime-local" />
          </label>
          <label>
            {t('Seen at the address')}
            <input name="address" placeholder="192.0.2.7" autocomplete="off" spellcheck={false} />
          </label>
          <button type="submit">{t('Find them')}</button>
        </form>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
      </Card>
      {found !== undefined && <Members found={found} />}
    </Page>
  )
}

function Members({ found: { crowd, total, user_ids } }: { readonly found: Found }) {
  const { ask, run, isBusy, say } = useActing()
  const who = total === 1 ? t('one account') : t('{count} accounts', { count: count(total) })

  async function act(verb: Text, words: Text, url: string, body: object): Promise<void> {
    const question = { title: `${t(verb)}: ${who}?`, words: <p>{t(words)}</p>, verb: t(verb), isGrave: true }
    if ((await ask(question)) === undefined) return
    let done = 0
    const isDone = await run(t('Done.'), async () => {
      done = (await call<{ total: number }>('POST', `${CROWDS}/${url}`, { crowd, ...body })).total
    })
    if (isDone) say(t('Done, for {count}.', { count: count(done) }))
  }

  const acts = [
    ['Lock', 'Nothing more comes from them. You can unlock them.', 'restrain', { lock: true }],
    ['Unlock', 'They can use their sessions again.', 'restrain', { lock: false }],
    ['Shadow-ban', 'They see what they send, and nobody else does.', 'restrain', { shadow_ban: true }],
    ['Redact', 'What they sent is taken away here and at other servers, in the background.', 'redact', {}],
    ['Quarantine', 'Their files are shown to nobody.', 'quarantine', {}],
  ] as const

  return (
    <Card title={total === 0 ? t('Nobody is like that') : t('Found: {who}', { who })}>
      {total > 0 && (
        <>
          <p class="actions">
            {acts.map(([verb, words, url, body]) => (
              <button
                key={verb}
                type="button"
                class={verb === 'Unlock' ? 'quiet' : 'quiet grave'}
                disabled={isBusy}
                onClick={() => void act(verb, words, url, body)}
              >
                {t(verb)}
              </button>
            ))}
          </p>
          <p class="names">
            {user_ids.slice(0, SHOWN).map((id) => (
              <a key={id} href={to(['users', id])}>
                {id}
              </a>
            ))}
            {total > SHOWN && <span class="soft">{t('and {count} more', { count: count(total - SHOWN) })}</span>}
          </p>
        </>
      )}
    </Card>
  )
}
