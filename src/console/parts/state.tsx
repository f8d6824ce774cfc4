import type { ComponentChildren } from 'preact'
import type { Loaded } from '../use-data.ts'
import { t } from '../words.ts'

/** What a page shows of an answer: the answer, why there is none, or that it is on its way. */
export function Shown<T>({
  of,
  children,
}: {
  readonly of: Loaded<T>
  readonly children: (data: T) => ComponentChildren
}) {
  return (
    <div aria-busy={of.isLoading} class="shown">
      {of.problem !== undefined && (
        <p class="problem" role="alert">
          {of.problem}{' '}
          <button type="button" class="quiet small" onClick={of.reload}>
            {t('Try again')}
          </button>
        </p>
      )}
      {of.data === undefined
        ? of.problem === undefined && <p class="soft wait">{t('Loading …')}</p>
        : children(of.data)}
    </div>
  )
}
