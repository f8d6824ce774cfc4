import { exactly, moment, since } from '../format.ts'
import { t } from '../words.ts'

/** A time, as one says it, and exactly for those who point at it. */
export function Moment({ at }: { readonly at: number | null | undefined }) {
  if (at === null || at === undefined || at === 0) return <span class="soft">{t('never')}</span>
  return (
    <time dateTime={exactly(at)} title={moment(at)}>
      {since(at)}
    </time>
  )
}
