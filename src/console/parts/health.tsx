import { count, since } from '../format.ts'
import type { OverviewData } from '../history.ts'
import { to } from '../router.ts'
import { type Text, t } from '../words.ts'

/** After so many failures a server counts as gone: it is asked seldom. */
const GONE_AFTER = 10

type Condition = 'behind' | 'failing' | 'gone'

function conditionOf(failures: number): Condition {
  if (failures >= GONE_AFTER) return 'gone'
  return failures > 0 ? 'failing' : 'behind'
}

const WORDS: Readonly<Record<Condition, Text>> = {
  behind: 'is being sent what it lacks',
  failing: 'does not answer',
  gone: 'has not answered for long',
}

/** A square for each server that lacks something; none is the best picture. */
export function Health({ federation, now }: { readonly federation: OverviewData['federation']; readonly now: number }) {
  const { behind, behind_total, failing_total } = federation
  if (behind_total === 0) {
    return (
      <p class="good-news">
        <span aria-hidden="true">●</span> {t('All other servers have been sent everything.')}
      </p>
    )
  }
  return (
    <>
      <p>
        {behind_total === 1
          ? t('One server lacks something.')
          : t('{count} servers lack something.', { count: count(behind_total) })}{' '}
        {failing_total === 0
          ? t('All of them answer.')
          : t('Of them, {count} do not answer.', { count: count(failing_total) })}
      </p>
      <ul class="squares">
        {behind.map(({ server, failures, retry_at }) => {
          const condition = conditionOf(failures)
          const next = retry_at > now ? `, ${t('next try {when}', { when: since(retry_at, now) })}` : ''
          const words = `${server} ${t(WORDS[condition])}${next}`
          return (
            <li key={server} class={condition} title={words}>
              <a href={to(['federation'], { destination: server })}>
                <span class="hidden">{words}</span>
              </a>
            </li>
          )
        })}
      </ul>
      <p class="soft legend">
        {(['behind', 'failing', 'gone'] as const).map((each) => (
          <span key={each}>
            <i class={each} aria-hidden="true" /> {t(WORDS[each])}
          </span>
        ))}
      </p>
    </>
  )
}
