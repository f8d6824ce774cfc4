import { count, since } from '../format.ts'
import type { OverviewData } from '../history.ts'
import { to } from '../router.ts'

/** After so many failures a server counts as gone: it is asked seldom. */
const GONE_AFTER = 10

type Condition = 'behind' | 'failing' | 'gone'

function conditionOf(failures: number): Condition {
  if (failures >= GONE_AFTER) return 'gone'
  return failures > 0 ? 'failing' : 'behind'
}

const WORDS: Readonly<Record<Condition, string>> = {
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
        <span aria-hidden="true">●</span> All other servers have been sent everything.
      </p>
    )
  }
  return (
    <>
      <p>
        {count(behind_total)} {behind_total === 1 ? 'server lacks' : 'servers lack'} something,{' '}
        {failing_total === 0 ? 'and all of them answer' : `and ${count(failing_total)} of them do not answer`}.
      </p>
      <ul class="squares">
        {behind.map(({ server, failures, retry_at }) => {
          const condition = conditionOf(failures)
          const next = retry_at > now ? `, next try ${since(retry_at, now)}` : ''
          const words = `${server} ${WORDS[condition]}${next}`
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
            <i class={each} aria-hidden="true" /> {WORDS[each]}
          </span>
        ))}
      </p>
    </>
  )
}
