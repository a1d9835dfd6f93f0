-- For Slurm's burst_buffer/lua: a separate burst buffer for each job that asks for one in its script.
--
--   #BB_LUA directory=/scratch/run1 ram-cache-size=64
--   #BB_LUA flash-destagers=2
--
-- This script runs on slurmctld's host. It checks the directives, sets the environment by which the job finds its buffer,
-- and waits until all data is in the directory. node.sh starts and stops the daemon on the job's node. The two scripts
-- communicate by files in STATE: JOB.wanted has the options of the job's buffer, and JOB.stopped says how it has ended.

local FOLDER, STATE, BUFFERS = "@FOLDER@", "@STATE@", "@BUFFERS@"

-- The keys in addition to the directory, with the limits that burst itself has.
local LIMITS = {
    ["polling-threads"] = { 1, 16 },
    ["worker-threads"] = { 1, 24 },
    ["ram-destagers"] = { 1, 24 },
    ["flash-destagers"] = { 1, 24 },
    ["ram-cache-size"] = { 16, @RAM_CACHE_MOST@ },
    ["flash-cache-size"] = { 16, @FLASH_CACHE_MOST@ },
    ["ram-cache-threshold"] = { 1, 100 },
    ["flash-cache-threshold"] = { 1, 100 },
}
local DIRECTORY_ALLOWED = "an absolute path without spaces, quotation marks and control characters"

local function refused(field, value, allowed)
    return string.format("burst buffer: %s: '%s' is not allowed. Use %s.", field, value, allowed)
end

local function exists(path)
    local file, why = io.open(path .. "/.")
    if file then
        file:close()
    end
    -- a path that only the job's user may see is checked on the node
    return file ~= nil or string.find(why, "Permission denied", 1, true) ~= nil
end

local function known_keys()
    local keys = { "directory" }
    for key in pairs(LIMITS) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    return table.concat(keys, ", ")
end

-- Returns a key's value as it is passed on, or nil and an error.
local function checked(key, value)
    if key == "directory" then
        if not string.find(value, "^/[^%s%c'\"\\]*$") then
            return nil, refused(key, value, DIRECTORY_ALLOWED)
        end
        if not exists(value) then
            return nil, refused(key, value, "a directory that exists")
        end
        return value
    end
    local limits = LIMITS[key]
    if not limits then
        return nil, refused("#BB_LUA", key, "one of " .. known_keys())
    end
    local number = string.find(value, "^%d%d?%d?%d?%d?%d?%d?%d?%d?$") and tonumber(value)
    if not number or number < limits[1] or number > limits[2] then
        return nil, refused(key, value, string.format("%d to %d", limits[1], limits[2]))
    end
    return value
end

local function read(path, what)
    local file = io.open(path)
    local content = file and file:read(what)
    if file then
        file:close()
    end
    return content
end

-- Reads the directives in a job's script; returns their values by key, or nil and an error.
local function directives_of(script)
    local found = {}
    for line in string.gmatch(read(script, "*a") or "", "[^\r\n]+") do
        local words = string.match(line, "^#BB_LUA%s+(.*)")
        for word in string.gmatch(words or "", "%S+") do
            local key, value = string.match(word, "^([^=]+)=(.*)$")
            if not key then
                return nil, refused("#BB_LUA", word, "KEY=VALUE with one of the keys " .. known_keys())
            end
            if found[key] then
                return nil, string.format("burst buffer: %s is given twice. Give each key once in a script.", key)
            end
            local passed, why = checked(key, value)
            if not passed then
                return nil, why
            end
            found[key] = passed
        end
    end
    if not found.directory then
        return nil, "burst buffer: directory is missing. Use " .. DIRECTORY_ALLOWED .. "."
    end
    return found
end

-- Writes a file completely or not at all; returns an error.
local function write(path, lines)
    local file, problem = io.open(path .. ".new", "w")
    if not file then
        return problem
    end
    file:write(table.concat(lines, "\n"), "\n")
    file:close()
    local _, why = os.rename(path .. ".new", path)
    return why
end

local function lines_of(command)
    local pipe = io.popen(command)
    local lines = {}
    for line in pipe:lines() do
        lines[#lines + 1] = line
    end
    pipe:close()
    return lines
end

local function state(job, kind)
    return string.format("%s/%d.%s", STATE, job, kind)
end

local function within(path, other)
    return string.sub(path .. "/", 1, #other + 1) == other .. "/"
end

-- Returns the other job whose buffer has this directory, or one above or below it; nil: none.
local function user_of(directory, job)
    for _, file in ipairs(lines_of("ls -- '" .. STATE .. "'")) do
        local other = tonumber(string.match(file, "^(%d+)%.wanted$"))
        local its = other and other ~= tonumber(job) and read(state(other, "wanted"), "*l")
        if its and (within(its, directory) or within(directory, its)) then
            return other
        end
    end
end

local function forget(job)
    for _, kind in ipairs({ "waiting", "wanted", "stopped", "log" }) do
        os.remove(state(job, kind))
    end
end

-- Removes the files of jobs that were cancelled while they waited here: Slurm may end their teardown together with their
-- setup. `job` exists: if squeue does not list it, squeue has not answered.
local function forget_cancelled(job)
    local others, states = {}, {}
    for _, file in ipairs(lines_of("ls -- '" .. STATE .. "'")) do
        local other = string.match(file, "^(%d+)%.w%a+$")
        -- a job with a log has begun
        if other and not read(state(other, "log"), "*a") then
            others[#others + 1] = other
        end
    end
    local list = table.concat(others, ",")
    for _, line in ipairs(lines_of(string.format("squeue -h --states=all -j %d,%s -o '%%A %%T'", job, list))) do
        local number, word = string.match(line, "^(%d+) (%S+)$")
        states[number or ""] = word
    end
    if not states[tostring(job)] then
        return
    end
    for _, other in ipairs(others) do
        if states[other] == nil or states[other] == "CANCELLED" or states[other] == "DEADLINE" then
            forget(other)
        end
    end
end

-- At submission.
function slurm_bb_job_process(script)
    local _, why = directives_of(script)
    if why then
        return slurm.ERROR, why
    end
    return slurm.SUCCESS
end

function slurm_bb_pools()
    return slurm.SUCCESS
end

-- Before the job gets its nodes: claims the directory until all data is in it. Waits for another job that has it.
function slurm_bb_setup(job, _, _, _, _, script)
    local found, why = directives_of(script)
    if not found then
        return slurm.ERROR, why
    end
    local directory = lines_of("realpath -- '" .. found.directory .. "'")[1] or found.directory
    local lines = { directory }
    for key in pairs(LIMITS) do
        if found[key] then
            lines[#lines + 1] = "--" .. key .. "=" .. found[key]
        end
    end
    local problem = write(state(job, "waiting"), lines)
    local tries = 0
    while not problem do
        if tries % 20 == 0 then
            forget_cancelled(job)
        end
        tries = tries + 1
        problem = write(state(job, "wanted"), lines)
        -- a job that does not wait any more does not claim the directory either
        if not problem and not user_of(directory, job) and os.remove(state(job, "waiting")) then
            return slurm.SUCCESS
        end
        -- two jobs that claim it at the same time see each other, and try again at different times
        os.remove(state(job, "wanted"))
        os.execute("sleep " .. 0.2 + job % 10 / 20)
        if not read(state(job, "waiting"), "*l") then
            problem = "the job was cancelled"
        end
    end
    return slurm.ERROR, "burst buffer: " .. problem
end

function slurm_bb_data_in()
    return slurm.SUCCESS
end

function slurm_bb_real_size()
    return slurm.SUCCESS
end

-- The job's environment.
function slurm_bb_paths(job, _, path)
    local file = io.open(path, "w")
    file:write("BURST_BUFFER=", BUFFERS, "/", job, "\n")
    file:write("BURST_DIRECTORY=", read(state(job, "wanted"), "*l"), "\n")
    file:write("LD_PRELOAD=", FOLDER, "/libburst.so\n")
    file:close()
    return slurm.SUCCESS
end

-- When the job has its nodes, before it begins there.
function slurm_bb_pre_run(job)
    local nodes = lines_of(string.format("squeue -h -j %d -o %%D", job))[1]
    if nodes ~= "1" then
        return slurm.ERROR, refused("nodes", nodes or "unknown", "1, because nodes do not see each other's buffers")
    end
    return slurm.SUCCESS
end

function slurm_bb_post_run()
    return slurm.SUCCESS
end

-- When the job has ended: waits until its node has written all data to the directory.
function slurm_bb_data_out(job)
    local stopped
    while not stopped do
        stopped = read(state(job, "stopped"), "*l")
        if not stopped then
            os.execute("sleep 0.2")
        end
    end
    if string.find(stopped, "recover", 1, true) then
        return slurm.ERROR, "burst buffer: not all could be written to the directory: " .. stopped
    end
    return slurm.SUCCESS
end

function slurm_bb_job_teardown(job)
    forget(job)
    return slurm.SUCCESS
end

function slurm_bb_get_status()
    return slurm.SUCCESS, ""
end
