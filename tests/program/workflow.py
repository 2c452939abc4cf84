"""A workflow's log in BP, with the shapes of Pegasus' monitord: plan, tasks, jobs, and the steps of each job's instances."""
import datetime
import random

WORKFLOW = "a3927dc2-0514-4e00-8e42-27c61c867648"
STEPS = ("submit.start", "submit.end", "main.start", "main.term", "host.info", "main.end", "post.start", "post.term", "post.end")


def _value(value):
    text = str(value)
    return f'"{text}"' if not text or any(c in text for c in ' =') else text


def _line(seconds, event, **fields):
    time = datetime.datetime(2012, 3, 14, 14, 4, 46) + datetime.timedelta(seconds=seconds)
    rest = "".join(f" {name.replace('__', '.')}={_value(value)}" for name, value in fields.items())
    return f"ts={time:%Y-%m-%dT%H:%M:%S.%f}Z event=stampede.{event} level=Info{rest}\n"


def _instance(rng, at, name, number, cut):
    """Returns (time, line) for each step of one instance of a job. The order of the fields differs between the events."""
    id_ = {"xwf__id": WORKFLOW, "job__id": name, "job_inst__id": number}
    lines = []
    for js, step in enumerate(STEPS[:cut], 1):
        at += rng.choice([0, 0, 1, 5, 32]) + (rng.randrange(10**6) / 10**6 if rng.random() < 0.1 else 0)
        fields = {**id_, "js__id": js, "sched__id": f"{422 + number}.0"}
        if step.endswith(".end"):
            fields = {"status": rng.choice([0, 0, -1]), **fields, "exitcode": 0}
        if step == "main.end":
            fields.update(stderr__text="", stdout__text="#@ 1 stdout%0A2012-03-14 15:05:05,506    INFO:  Reading, a=b %27x%27%0A" * rng.randrange(40),
                          multiplier_factor=1, local__dur=rng.randrange(100))
        if step == "host.info":
            fields = {"hostname": f"node{number % 4}.novalocal", "total_memory": 2110541824, "ip": f"10.0.0.{number}", **id_, "uname": "linux-2.6.32-5-amd64-x86_64"}
        lines.append((at, _line(at, "job_inst." + step, **fields)))
        if step == "main.term":
            for invocation in range(1, rng.randrange(1, 4)):
                lines.append((at, _line(at, "inv.end", xwf__id=WORKFLOW, executable="/usr/bin/mProjectPP", start_time=1331762710, argv=" -X -x 0.94789   a.fits    b.fits ",
                                        inv__id=invocation, dur=f"{rng.randrange(40)}.{rng.randrange(10)}", transformation="mProjectPP:3.3", exitcode=-1, **{"job__id": name, "job_inst__id": number})))
    return lines


def workflow_log(jobs=40, unfinished=(), seed=1):
    """Returns the log's text in order of time. Jobs whose numbers are in unfinished end after their main part."""
    rng = random.Random(seed)
    lines = [(0, _line(0, "wf.plan", xwf__id=WORKFLOW, dax__label="montage", dax__index=0, argv="--conf pegasusrc --sites local-condor --dir work")),
             (2, _line(2, "static.start"))]
    for job in range(1, jobs + 1):
        name = f"merge_mProjectPP-3.3_PID{job}_ID{job}"
        lines.append((3, _line(3, "task.info", type_desc="compute", task__id=f"ID{job:06d}", argv=f" -X -x 0.9{job}  {job}.fits ", type=1, xwf__id=WORKFLOW)))
        lines.append((3, _line(3, "job.edge", child__job__id=name, parent__job__id="stage_in_remote_local_0", xwf__id=WORKFLOW)))
        lines.extend(_instance(rng, 60 + job * 3, name, job, 6 if job in unfinished else len(STEPS)))
    lines.sort(key=lambda line: line[0])
    lines.append((lines[-1][0], _line(lines[-1][0], "xwf.end", status=0, xwf__id=WORKFLOW, restart_count=0)))
    return "".join(text for _, text in lines)
