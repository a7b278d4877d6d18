module example

go 1.21

require kspec-runner v0.0.0

replace kspec-runner => ../../go
