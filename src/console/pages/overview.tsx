import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { bytes, clock, count, duration } from '../format.ts'
import { type HistoryData, lastHour, type OverviewData, type Sample, sampleOf, samplesOf } from '../history.ts'
import { Health } from '../parts/health.tsx'
import { later } from '../parts/later.tsx'
import { Moment } from '../parts/moment.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'

const EVERY_MS = 2_000
/** After a longer pause, in which nobody saw the page, the server knows better what happened. */
const PAUSE_MS = 30_000

const Chart = later(async () => (await import('../parts/chart.tsx')).Chart)

const perSecond = (value: number) => count(value)
const inMs = (value: number) => (value < 10 ? `${count(value)} ms` : `${Math.round(value)} ms`)

/** The samples of the last hour: those that the server kept, and since then the page's own. */
function useSamples(data: OverviewData | undefined): readonly Sample[] {
  const history = useData<HistoryData>('/_hearth/admin/v1/overview/history')
  const kept = useMemo(() => (history.data === undefined ? [] : samplesOf(history.data)), [history.data])
  const before = useRef<OverviewData | undefined>(undefined)
  const [own, setOwn] = useState<readonly Sample[]>([])
  useEffect(() => {
    if (data === undefined) return
    const last = before.current
    before.current = data
    if (last === undefined) return
    if (data.at - last.at > PAUSE_MS) {
      setOwn([])
      history.reload()
      return
    }
    const sample = sampleOf(last, data)
    if (sample !== undefined) setOwn((all) => lastHour(all, [sample]))
  }, [data])
  return useMemo(() => lastHour(kept, own), [kept, own])
}

export function Overview() {
  const overview = useData<OverviewData>('/_hearth/admin/v1/overview', EVERY_MS)
  const samples = useSamples(overview.data)
  return (
    <Page title={t('Overview')} words={t('What the server is doing, and did in the last hour.')}>
      <Shown of={overview}>{(data) => <Now data={data} samples={samples} />}</Shown>
    </Page>
  )
}

function Now({ data, samples }: { readonly data: OverviewData; readonly samples: readonly Sample[] }) {
  const { glance, size, federation } = data
  const last = samples.at(-1)
  const times = samples.map(({ at }) => at / 1000)
  const answers = samples.filter(({ p99 }) => p99 !== null)
  return (
    <>
      <div class="tiles">
        <Live
          label={t('Events a second')}
          value={last && count(last.events)}
          chart={{ times, values: samples.map(({ events }) => events), show: perSecond }}
        />
        <Live
          label={t('Slowest of 100 requests (p99)')}
          value={answers.at(-1)?.p99 == null ? undefined : inMs(answers.at(-1)!.p99!)}
          chart={{ times, values: samples.map(({ p99 }) => p99), show: inMs }}
        />
        <Live
          label={t('Requests a second')}
          value={last && count(last.requests)}
          chart={{ times, values: samples.map(({ requests }) => requests), show: perSecond }}
        />
        <Live
          label={t('Syncs that wait')}
          value={count(glance.waitingSyncs)}
          chart={{ times, values: samples.map(({ syncs }) => syncs), show: perSecond }}
        />
        <Live
          label={t('Memory')}
          value={bytes(glance.residentBytes)}
          chart={{ times, values: samples.map(({ resident }) => resident), show: bytes, isBytes: true }}
        />
        <Card title={t('Holdings')}>
          <Facts
            list={[
              [t('Database'), bytes(size.database_bytes)],
              [t('Accounts'), <a href={to(['users'])}>{count(size.users)}</a>],
              [t('Active this month'), count(data.monthly_active_users)],
              [t('Rooms'), <a href={to(['rooms'])}>{count(size.rooms)}</a>],
              [t('Open reports'), <a href={to(['reports'])}>{count(size.open_reports)}</a>],
              [t('Last backup'), <Moment at={size.last_backup_at} />],
              [t('Running for'), duration(data.at - data.since)],
            ]}
          />
        </Card>
      </div>
      <Card title={t('Other servers')}>
        <Health federation={federation} now={data.at} />
      </Card>
    </>
  )
}

function Live({
  label,
  value,
  chart,
}: {
  readonly label: string
  readonly value: string | undefined
  readonly chart: {
    readonly times: readonly number[]
    readonly values: readonly (number | null)[]
    readonly show: (value: number) => string
    readonly isBytes?: boolean
  }
}) {
  const [pointed, setPointed] = useState<number>()
  const then = pointed === undefined ? undefined : chart.values[pointed]
  return (
    <section class="card tile">
      <h2>{label}</h2>
      <p class="figure">
        {then == null ? (value ?? '–') : chart.show(then)}
        {then != null && <span class="soft then">{clock(chart.times[pointed!]! * 1000)}</span>}
      </p>
      <Chart label={label} point={setPointed} {...chart} />
    </section>
  )
}
