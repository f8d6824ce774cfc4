import { useEffect, useRef, useState } from 'preact/hooks'
import { bytes, count, duration } from '../format.ts'
import { type OverviewData, type Sample, sampleOf } from '../history.ts'
import { Health } from '../parts/health.tsx'
import { later } from '../parts/later.tsx'
import { Moment } from '../parts/moment.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'

const EVERY_MS = 2_000
/** Five minutes. */
const MAX_SAMPLES = 150

const Chart = later(async () => (await import('../parts/chart.tsx')).Chart)

const perSecond = (value: number) => count(value)
const inMs = (value: number) => (value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`)

/** The samples of the last minutes; a chart begins with the page. */
function useSamples(data: OverviewData | undefined): readonly Sample[] {
  const before = useRef<OverviewData | undefined>(undefined)
  const [samples, setSamples] = useState<readonly Sample[]>([])
  useEffect(() => {
    if (data === undefined) return
    const sample = before.current && sampleOf(before.current, data)
    before.current = data
    if (sample !== undefined) setSamples((all) => [...all, sample].slice(-MAX_SAMPLES))
  }, [data])
  return samples
}

export function Overview() {
  const overview = useData<OverviewData>('/_hearth/admin/v1/overview', EVERY_MS)
  const samples = useSamples(overview.data)
  return (
    <Page title="Overview" words="What the server is doing now.">
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
          label="Events a second"
          value={last && count(last.events)}
          chart={{ times, values: samples.map(({ events }) => events), show: perSecond }}
        />
        <Live
          label="Slowest of 100 requests (p99)"
          value={answers.at(-1)?.p99 == null ? undefined : inMs(answers.at(-1)!.p99!)}
          chart={{ times, values: samples.map(({ p99 }) => p99), show: inMs }}
        />
        <Live
          label="Requests a second"
          value={last && count(last.requests)}
          chart={{ times, values: samples.map(({ requests }) => requests), show: perSecond }}
        />
        <Live
          label="Syncs that wait"
          value={count(glance.waitingSyncs)}
          chart={{ times, values: samples.map(({ syncs }) => syncs), show: perSecond }}
        />
        <Live
          label="Memory"
          value={bytes(glance.residentBytes)}
          chart={{ times, values: samples.map(({ resident }) => resident), show: bytes }}
        />
        <Card title="Holdings">
          <Facts
            list={[
              ['Database', bytes(size.database_bytes)],
              ['Accounts', <a href={to(['users'])}>{count(size.users)}</a>],
              ['Active this month', count(data.monthly_active_users)],
              ['Rooms', <a href={to(['rooms'])}>{count(size.rooms)}</a>],
              ['Reports', <a href={to(['reports'])}>{count(size.open_reports)}</a>],
              ['Last backup', <Moment at={size.last_backup_at} />],
              ['Running for', duration(data.at - data.since)],
            ]}
          />
        </Card>
      </div>
      <Card title="Other servers">
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
  }
}) {
  return (
    <section class="card tile">
      <h2>{label}</h2>
      <p class="figure">{value ?? '–'}</p>
      <Chart label={label} {...chart} />
    </section>
  )
}
